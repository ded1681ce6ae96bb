package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gpumeter/gpumeter/spell"
)

// most is the largest simulated node.
const most = 64

// jobSize is how many neighbours of one model work on one job.
const jobSize = 4

// nodes are the nodes with a name.
var nodes = map[string]string{
	// One board of each sort of gap in what is told.
	"mixed": "h100x2,h100migx1,b200x1,a100x1,l40sx1,rtx4090x1,mi300xx1,gaudi3x1",
}

// slot is one place of a node and the board in it.
type slot struct {
	board *board
	entry int // which entry of the node it comes from
	job   int // which of the entry's jobs it works on
	seat  int // which place of the job it has
	mates int // how many boards work on the job, itself included
	seed  uint64
	slurm bool // jobs that train are Slurm's
}

// slurm among the boards of a node says that Slurm starts its trainings.
const slurm = "slurm"

// parse reads the description of a node and reports every mistake in it: boards, and faults that
// are asked for.
func parse(node string) (slots []slot, all asks, err error) {
	var entries []string
	var faults []error
	jobs := false
	for part := range strings.SplitSeq(strings.ToLower(node), ",") {
		part = strings.TrimSpace(part)
		if part == slurm {
			jobs = true
			continue
		}
		if !isTrouble(part) {
			entries = append(entries, part)
			continue
		}
		one, err := parseTrouble(part)
		if err != nil {
			faults = append(faults, err)
		}
		all = append(all, one)
	}
	if len(entries) == 1 && nodes[entries[0]] != "" {
		entries = strings.Split(nodes[entries[0]], ",")
	}
	if len(entries) == 0 {
		faults = append(faults, fmt.Errorf("%q has no device; %s", node, catalogue()))
	}
	for entry, part := range entries {
		b, count, err := parseEntry(part)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for i := range count {
			job, seat := i/jobSize, i%jobSize
			slots = append(slots, slot{board: b, entry: entry, job: job, seat: seat, mates: min(jobSize, count-i+seat), slurm: jobs})
		}
	}
	if len(slots) > most {
		faults = append(faults, fmt.Errorf("%q has %d devices; the most is %d", node, len(slots), most))
	}
	return slots, all, errors.Join(faults...)
}

// parseEntry reads MODEL, which is one device, or MODELxCOUNT. A model may have an x of its own, so
// the last one divides.
func parseEntry(part string) (*board, int, error) {
	known := modelIDs()
	if i := slices.Index(known, part); i >= 0 {
		return &boards[i], 1, nil
	}
	cut := max(0, strings.LastIndexByte(part, 'x'))
	id, digits := part[:cut], strings.TrimPrefix(part[cut:], "x")
	count, err := strconv.Atoi(digits)
	i := slices.Index(known, id)
	switch {
	case i >= 0 && (err != nil || count < 1 || count > most):
		return nil, 0, fmt.Errorf("%q: the count %q is not a number from 1 to %d", part, digits, most)
	case i >= 0:
		return &boards[i], count, nil
	case err == nil && id != "":
		return nil, 0, fmt.Errorf("%q: no model %q%s; %s", part, id, spell.Suggest(id, known), catalogue())
	}
	words := slices.Concat(known, nodeNames(), troubleNames(), []string{slurm})
	return nil, 0, fmt.Errorf("%q is not a model, MODELxCOUNT, a node or a fault%s; %s", part, spell.Suggest(part, words), catalogue())
}

// catalogue lists the words that describe a node.
func catalogue() string {
	list := func(words []string) string { return strings.Join(words, ", ") }
	return "models are " + list(modelIDs()) + "; nodes are " + list(nodeNames()) + "; faults are " + list(troubleNames()) +
		"; with " + slurm + " trainings are jobs of Slurm"
}

func nodeNames() []string { return slices.Sorted(maps.Keys(nodes)) }

// modelIDs are the models as the description of a node writes them.
func modelIDs() []string {
	ids := make([]string, 0, len(boards))
	for i := range boards {
		ids = append(ids, boards[i].id)
	}
	return ids
}
