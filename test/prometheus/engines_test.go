package prometheus

import (
	"testing"
	"time"
)

const (
	vllmPod  = "vllm0-0"
	notAlive = "see InferenceThroughputDrop"
)

var sickEngine = map[string]string{"instance": sickNode, "inference_model": sickModel}

func inferenceAlerts() []*scenario {
	const minutes5, minutes10 = 5 * time.Minute, 10 * time.Minute
	return []*scenario{
		{
			alert: "InferenceHighTTFT", held: minutes5, about: sickEngine, pod: vllmPod,
			window: minutes5, sick: mean(minutes5, 0, 1, 0.05), above: mean(minutes5, 0, 0.06, 0.05), alive: notAlive,
			page: engines(func(e engine) {
				e.late("inference_time_to_first_token_seconds_bucket", levels{0, 0.049, 1, 0.06}, "2.0", "2.5")
			}),
		},
		{
			alert: "InferenceHighLatency", held: minutes5, about: sickEngine, pod: vllmPod,
			window: minutes5, sick: mean(minutes5, 0, 1, 0.01), above: mean(minutes5, 0, 0.012, 0.01), alive: notAlive,
			page: engines(func(e engine) {
				e.late("inference_request_duration_seconds_bucket", levels{0, 0.0099, 1, 0.012}, "30.0", "60.0")
			}),
		},
		{
			alert: "InferenceKVCachePressure", held: minutes5, about: sickEngine, pod: vllmPod, alive: notAlive,
			page: engines(func(e engine) { e.gauge("inference_kv_cache_utilization_ratio", levels{0.5, 0.9, 0.91, 0.91}) }),
		},
		{
			alert: "InferenceQueueSaturation", held: minutes5, about: sickEngine, pod: vllmPod, alive: notAlive,
			page: engines(func(e engine) { e.gauge("inference_requests_waiting", levels{0, 10, 11, 11}) }),
		},
		{
			// It is compared with an hour ago, over ten minutes: half of these must have passed before it is half.
			alert: "InferenceThroughputDrop", held: minutes10, pod: "",
			about:  map[string]string{"k8s_namespace_name": "ml", "inference_model": sickModel, "namespace": "ml"},
			window: minutes10, sick: mean(minutes10, 1, 0, 0.5), above: mean(minutes10, 1, 0.49, 0.5), past: time.Hour + minutes10, sudden: true,
			page: func(c *scene) {
				tick := c.tick
				engines(func(e engine) {
					if e.pairs[5] == sickModel { // both of the model's engines
						e.level = c.level
					}
					if c.ends && e.pairs[5] == sickModel && tick >= 0 && c.level != healthy {
						return
					}
					e.count("inference_generated_tokens_total", levels{100, 51, 0, 49})
					e.gauge("inference_requests_waiting", levels{0, 3, 3, 3})
					e.gauge("inference_requests_running", levels{8, 8, 8, 8})
				})(c)
			},
		},
		{
			alert: "InferenceHighErrorRate", held: minutes5, about: sickEngine, pod: vllmPod,
			window: minutes5, sick: mean(minutes5, 0, 1, 0.05), above: mean(minutes5, 0, 0.06, 0.05), alive: notAlive,
			page: engines(func(e engine) {
				for reason, rate := range map[string]levels{
					"error": {0, 0.049, 1, 0.06}, "stop": {1, 0.951, 0, 0.94}, "abort": {0.5, 0, 0, 0},
				} {
					e.count("inference_requests_finished_total", rate, "inference_finish_reason", reason)
				}
			}),
		},
	}
}

// That one engine or another of a model is slow is no news: one that did well meanwhile has not been slow
// for long.
func TestEnginesTakeTurns(t *testing.T) {
	file := packs(t)["InferenceKVCachePressure"]
	turns := &scenario{
		alert: "InferenceKVCachePressure", held: 15 * time.Minute, // three times as long as it must be
		page: func(c *scene) {
			turn := sickNode
			if c.tick/4%2 == 1 {
				turn = "node-b"
			}
			engines(func(e engine) {
				e.level = healthy
				if e.pairs[1] == turn {
					e.level = sick
				}
				e.gauge("inference_kv_cache_utilization_ratio", levels{0.5, 0.9, 0.91, 0.91})
			})(c)
		},
	}
	newRun(t, turns, file, under, usual).play()
}
