package doctor

import (
	"fmt"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/attribution/slurm"
)

// Slurm returns the provider that the prolog's files are.
func Slurm(s slurm.State) Witness {
	w := Witness{Name: "slurm", Tells: "GPUs of Slurm jobs", State: WitnessOK, Read: s.Looked}
	switch {
	case s.Looked.IsZero():
		w.State = string(kubernetes.Waiting)
		return w
	case s.Err != "":
		w.State, w.Err = string(kubernetes.Broken), s.Err
		w.Advice = "Slurm's job mapping cannot be read in full: find out what writes to " + s.Path + "."
	}
	if s.Shared != "" {
		w.Err = strings.TrimPrefix(fmt.Sprintf("%s; %s is %s", w.Err, s.Path, s.Shared), "; ")
		w.Advice = "Users other than root can write Slurm's job mapping, so only root's files are read: chown root " + s.Path + " && chmod 0755 " + s.Path
	}
	w.Knows = plural(s.Jobs, "GPU allocated to a job", "GPUs allocated to jobs")
	if len(s.Absent) > 0 {
		w.Err = strings.TrimPrefix(fmt.Sprintf("%s; unknown GPU indexes: %s", w.Err, strings.Join(s.Absent, " ")), "; ")
		w.Advice = "Slurm allocates GPUs that are not read here: map its indexes to devices or MIG instances with --slurm.gpu."
	}
	return w
}
