package config

import (
	"slices"

	"github.com/alecthomas/kong"
)

// groups are the titles over the flags in a command's help. Their order is that of the fields.
func groups() kong.Option {
	return kong.ExplicitGroups([]kong.Group{
		{Key: "http", Title: "HTTP server:"},
		{Key: "metrics", Title: "Metrics and devices:"},
		{Key: "attribution", Title: "Attribution:"},
		{Key: "kubernetes", Title: "Kubernetes:"},
		{Key: "slurm", Title: "Slurm:"},
		{Key: "node", Title: "Drivers and the host:"},
		{Key: "simulation", Title: "Simulation:"},
		{Key: "general", Title: "General:"},
	})
}

// printHelp prints a command's own flags first, and those of all commands last.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	app := ctx.Model
	i := slices.IndexFunc(app.Flags, func(f *kong.Flag) bool { return f.Name == "config.file" })
	app.HelpFlag.Group = app.Flags[i].Group
	if command := ctx.Selected(); command != nil {
		command.Flags = append(command.Flags, app.Flags...)
		app.Flags = nil
	}
	return kong.DefaultHelpPrinter(options, ctx)
}

// Help is shown below the description in the help of gpumeter itself, as those below in the help of
// their commands.
func (Config) Help() string {
	return `Without a command it serves metrics; gpumeter serve --help lists all settings. Each flag is also an
environment variable and a key of the file given with --config.file.

	gpumeter                     # serve http://localhost:9450/metrics
	gpumeter --simulate=h100x8   # the same, of a simulated node
	gpumeter once                # print one reading as a table
	gpumeter doctor              # explain the owner of each device`
}

// Help is an example of the command.
func (Serve) Help() string {
	return `Examples:

	gpumeter serve --web.listen-address=127.0.0.1:9450
	gpumeter serve --metrics.include=system --metrics.exclude='gpu.media.*'
	gpumeter serve --simulate=h100x8`
}

// Help is an example of the command.
func (Once) Help() string {
	return `Examples:

	gpumeter once
	gpumeter once --devices=0,1 --format=prometheus`
}

// Help is an example of the command.
func (Doctor) Help() string {
	return `Examples:

	gpumeter doctor
	gpumeter doctor --url=http://localhost:9450`
}

// Help is an example of the command.
func (Spec) Help() string {
	return `Examples:

	gpumeter spec gpu_power_draw_watts
	gpumeter spec gpu.power DCGM_FI_DEV_GPU_TEMP
	gpumeter spec xid79
	gpumeter spec GPUIdleWaste`
}

// Help is an example of the command.
func (Bundle) Help() string {
	return `Examples:

	gpumeter bundle rules | kubectl apply -f -
	gpumeter bundle rules --plain >/etc/prometheus/gpumeter.yaml
	gpumeter bundle --output=DIR`
}

// Help is an example of the command.
func (Completing) Help() string {
	return `Example:

	gpumeter completion bash >/etc/bash_completion.d/gpumeter`
}

// Help is an example of the command.
func (Help) Help() string {
	return `Example:

	gpumeter help serve`
}
