package attribution

import (
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// usage is one line of the ledger: it outlives the workloads it is made of.
type usage struct {
	who    telemetry.UsageAttributes
	labels *metric.Labels
	born   time.Time
	seen   time.Time // when a workload was last billed to it
	live   bool      // its hold is over
	bill
}

// idle is for how long a line stays that nobody is billed to any more. What is asked over a month
// finds its samples all the same; it is far above any scrape interval, so that increase() has
// little to guess at the end of the series.
const idle = 24 * time.Hour

func (u *usage) tell(now time.Time, hold time.Duration) telemetry.Part[telemetry.Usage] {
	out := telemetry.Part[telemetry.Usage]{Labels: u.labels}
	u.live = u.live || now.Sub(u.born) >= hold
	u.bill.tell(&out.Read.Accounting, u.live)
	return out
}

// line is the line of the ledger that somebody is billed to. Beyond the limit it is that of the
// namespace or account, and beyond twice the limit that of all.
func (a *Attributor) line(who telemetry.UsageAttributes) *usage {
	if a.ledger[who] == nil && len(a.lines) >= a.cfg.Limit && who.WorkloadType < telemetry.WorkloadTypeUnattributed {
		a.billed++
		who = telemetry.UsageAttributes{
			Model: who.Model, WorkloadType: telemetry.WorkloadTypeOverflow, K8sNamespaceName: who.K8sNamespaceName, SlurmAccount: who.SlurmAccount,
		}
		if a.ledger[who] == nil && len(a.lines) >= 2*a.cfg.Limit {
			who.K8sNamespaceName, who.SlurmAccount = "", ""
		}
	}
	u := a.ledger[who]
	if u == nil {
		u = &usage{who: who, labels: who.Labels(), born: a.clock}
		a.ledger[who] = u
		a.lines = append(a.lines, u)
	}
	return u
}
