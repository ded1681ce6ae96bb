package doctor

import (
	"fmt"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/attribution/slurm"
)

// Slurm is the witness that the prolog's files are.
func Slurm(s slurm.State) Witness {
	w := Witness{Name: "slurm", Tells: "which jobs were given which GPUs", State: WitnessOK, Read: s.Looked}
	switch {
	case s.Looked.IsZero():
		w.State = string(kubernetes.Waiting)
		return w
	case s.Err != "":
		w.State, w.Err = string(kubernetes.Broken), s.Err
		w.Advice = "Slurm's job mapping can not be read in full: see what writes to " + s.Path
	}
	w.Knows = plural(s.Jobs, "GPU of a job", "GPUs of jobs")
	if len(s.Absent) > 0 {
		w.Err = strings.TrimPrefix(fmt.Sprintf("%s; no driver lists %s", w.Err, strings.Join(s.Absent, " ")), "; ")
		w.Advice = "Slurm gives jobs GPUs that are not read here: say with --slurm.gpu which devices, or MIG instances, its numbers mean"
	}
	return w
}
