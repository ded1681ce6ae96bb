//go:build cgo

package nvml

import (
	"log/slog"
	"slices"
	"sync"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// xids counts the XIDs of one device since the exporter started.
type xids struct {
	uuid string
	log  *slog.Logger
	mu   sync.Mutex
	code []uint64       // rising
	list []metric.Keyed // one per code; never changed in place, for snapshots hold it
}

func newXIDs(uuid string, log *slog.Logger) xids {
	return xids{uuid: uuid, log: log, list: []metric.Keyed{}}
}

// add counts one event.
func (x *xids) add(code uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	next := slices.Clone(x.list)
	i, seen := slices.BinarySearch(x.code, code)
	if !seen {
		x.log.Warn("XID of a new code", "uuid", x.uuid, "xid", code)
		x.code = slices.Insert(x.code, i, code)
		next = slices.Insert(next, i, metric.Keyed{Labels: telemetry.XIDErrorsAttributes{XID: int64(code)}.Labels()})
	}
	n, _ := next[i].Value.Get()
	next[i].Value.Set(n + 1)
	x.list = slices.Clip(next)
}

// all returns the counts, empty and not nil when there was none.
func (x *xids) all() []metric.Keyed {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.list
}
