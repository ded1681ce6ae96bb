package doctor

import (
	"fmt"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// absence counts, of one metric, the device or its parts for which no series has a number, by the reason.
type absence struct {
	desc   *metric.Desc
	parts  int // that were read
	why    []*metric.Reason
	counts []int // of parts, by why

	// Of the part that is being looked at.
	part    *metric.Labels
	present bool // it has a number
	reason  *metric.Reason
}

// absent returns, by the reason, the metrics that a source here reads and for which no series has a number.
// A metric of links, partitions or processes is followed by how many of them lack it: gpu.link.up (2 of 18).
func absent(on func(*metric.Desc) bool, d *telemetry.Device) map[string][]string {
	out := map[string][]string{}
	a := new(absence)
	d.Each(func(desc *metric.Desc, r telemetry.Reading) {
		if on != nil && !on(desc) {
			return
		}
		if desc != a.desc {
			a.report(out)
			*a = absence{desc: desc, part: r.Part}
		} else if r.Part != a.part {
			a.next(r.Part)
		}
		switch why := r.Value.Why(); {
		case r.Histogram != nil || why == nil:
			a.present = true
		case a.reason == nil || a.reason == metric.Unread:
			a.reason = why
		}
	})
	a.report(out)
	return out
}

// next counts the part that was looked at, and goes on to another.
func (a *absence) next(part *metric.Labels) {
	if a.present || a.reason != metric.Unread { // else the metric is another vendor's, or another link type's
		a.parts++
	}
	if !a.present && a.reason != metric.Unread {
		at := 0
		for at < len(a.why) && a.why[at] != a.reason {
			at++
		}
		if at == len(a.why) {
			a.why, a.counts = append(a.why, a.reason), append(a.counts, 0)
		}
		a.counts[at]++
	}
	a.part, a.present, a.reason = part, false, nil
}

// report adds the metric under each reason for which it is absent.
func (a *absence) report(out map[string][]string) {
	if a.desc == nil {
		return
	}
	a.next(nil)
	for i, why := range a.why {
		name := a.desc.Name
		if a.desc.Scope != "device" {
			name = fmt.Sprintf("%s (%d of %d)", name, a.counts[i], a.parts)
		}
		out[why.Text] = append(out[why.Text], name)
	}
}
