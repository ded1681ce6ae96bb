module github.com/gpumeter/gpumeter

go 1.26.0

require (
	github.com/prometheus/otlptranslator v1.0.0
	go.yaml.in/yaml/v3 v3.0.6
)
