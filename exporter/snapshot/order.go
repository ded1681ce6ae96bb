package snapshot

import (
	"cmp"
	"slices"
)

// ByVendor returns the devices for people to read: those of a vendor together, by index, and the vendor with
// the lowest index first.
func (s *Snapshot) ByVendor() []*Device {
	first := map[string]int{}
	out := make([]*Device, len(s.Devices))
	for i := range s.Devices {
		d := &s.Devices[i]
		out[i] = d
		if n, seen := first[d.Identity.Vendor]; !seen || d.Identity.Index < n {
			first[d.Identity.Vendor] = d.Identity.Index
		}
	}
	slices.SortStableFunc(out, func(a, b *Device) int {
		x, y := a.Identity, b.Identity
		return cmp.Or(cmp.Compare(first[x.Vendor], first[y.Vendor]), cmp.Compare(x.Vendor, y.Vendor), cmp.Compare(x.Index, y.Index))
	})
	return out
}
