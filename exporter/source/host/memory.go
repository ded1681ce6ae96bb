package host

import (
	"github.com/prometheus/procfs"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// readMemory fills the metrics of /proc/meminfo. It returns why the whole file gave nothing.
func readMemory(s *telemetry.System, m procfs.Meminfo) *metric.Reason {
	if m == (procfs.Meminfo{}) {
		return metric.Failed // empty: the kernel never writes it so
	}
	size(m.MemTotal, m.MemTotalBytes).into(&s.MemoryLimit)
	size(m.MemAvailable, m.MemAvailableBytes).into(&s.MemoryLinuxAvailable)
	readUsage(s, m)

	limit, known := s.MemoryLimit.Get()
	if available, ok := s.MemoryLinuxAvailable.Get(); ok && known && available > limit {
		s.MemoryLinuxAvailable.Fail(metric.Implausible)
	}
	return nil
}

// readUsage splits the memory into states that add up to the limit: bytes are whole numbers far
// below 2^53, so the sum is exact.
func readUsage(s *telemetry.System, m procfs.Meminfo) {
	total := size(m.MemTotal, m.MemTotalBytes)
	free := size(m.MemFree, m.MemFreeBytes)
	buffers := size(m.Buffers, m.BuffersBytes)
	cached := size(m.Cached, m.CachedBytes)
	// The kernel counts tmpfs and shared memory with its file cache, but can not give them back:
	// they are used. Counters kept per CPU may put them a little above the cache.
	if shared := size(m.Shmem, m.ShmemBytes); cached.why == nil && shared.why != metric.Unsupported {
		cached = amount{max(cached.bytes-shared.bytes, 0), shared.why}
	}
	used := amount{bytes: total.bytes - free.bytes - buffers.bytes - cached.bytes}
	for _, part := range []amount{total, free, buffers, cached} {
		if part.why != nil && (used.why == nil || part.why.Fault) {
			used.why = part.why
		}
	}
	if used.why == nil && used.bytes < 0 {
		failUsage(s, metric.Implausible) // one of the four is wrong, and nothing says which
		return
	}
	used.into(&s.MemoryUsage[telemetry.SystemMemoryStateUsed])
	free.into(&s.MemoryUsage[telemetry.SystemMemoryStateFree])
	buffers.into(&s.MemoryUsage[telemetry.SystemMemoryStateBuffers])
	cached.into(&s.MemoryUsage[telemetry.SystemMemoryStateCached])
}

func failUsage(s *telemetry.System, why *metric.Reason) {
	for state := range s.MemoryUsage {
		s.MemoryUsage[state].Fail(why)
	}
}

// amount is a number of bytes, or why it is not known.
type amount struct {
	bytes float64
	why   *metric.Reason
}

// maxKB is 8 PiB, up to which a float64 holds every byte.
const maxKB = 1 << 43

// size takes a line of the file, as the number in it and as procfs turned it into bytes.
func size(kb, bytes *uint64) amount {
	switch {
	case kb == nil || bytes == nil:
		return amount{why: metric.Unsupported} // no such line
	case *kb > maxKB:
		return amount{why: metric.Implausible}
	case *bytes != *kb*1024:
		return amount{why: metric.Failed} // no unit: the line is cut short, and so may the number be
	}
	return amount{bytes: float64(*bytes)}
}

func (a amount) into(v *metric.Value) {
	if a.why != nil {
		v.Fail(a.why)
	} else {
		v.Set(a.bytes)
	}
}
