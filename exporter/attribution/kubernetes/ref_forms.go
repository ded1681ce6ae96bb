package kubernetes

import "strings"

// nvidia reads the forms that say themselves that they are NVIDIA's.
func (r *Ref) nvidia(id string) bool {
	switch {
	case strings.HasPrefix(id, "GPU-"):
		uuid, rest := cutAt(id, len("GPU-")+uuidLength)
		if !isUUID(uuid[len("GPU-"):]) {
			return false
		}
		if rest != "" { // HAMi, whose plugin numbers the shares of a device
			n, ok := number(strings.TrimPrefix(rest, "-"))
			if !ok || rest[0] != '-' {
				return false
			}
			r.Shared, r.Replica = true, n
		}
		r.Key = Key{By: ByUUID, Name: lower(uuid)}
	case strings.HasPrefix(id, "MIG-GPU-"): // drivers before R470: the device, the GPU instance, the compute instance
		uuid, rest := cutAt(id[len("MIG-"):], len("GPU-")+uuidLength)
		gi, ci, ok := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		g, gok := number(gi)
		c, cok := number(ci)
		if !ok || !gok || !cok || rest[0] != '/' || !isUUID(uuid[len("GPU-"):]) {
			return false
		}
		r.Key = Key{By: ByUUID, Name: lower(uuid)}
		r.Part = Part{Of: ByInstance, Instance: g, Compute: c + 1}
	case strings.HasPrefix(id, "MIG-"):
		if !isUUID(id[len("MIG-"):]) {
			return false
		}
		r.Key = Key{By: ByMIG, Name: lower(id)}
	default:
		return false
	}
	r.Vendor = "nvidia"
	return true
}

// lower is a UUID as NVML writes it: GPU- or MIG-, and digits in lower case.
func lower(uuid string) string {
	const prefix = len("GPU-")
	if low := strings.ToLower(uuid[prefix:]); low != uuid[prefix:] {
		return uuid[:prefix] + low
	}
	return uuid
}

// numbered reads the forms that are a word and a number.
func (r *Ref) numbered(id string) bool {
	head, rest, _ := strings.Cut(id, "/")
	if n, ok := after(head, "nvidia"); ok { // GKE: nvidia0[/gi1][/vgpu3]
		return r.gke(n, rest)
	}
	if rest != "" {
		return false
	}
	if n, ok := after(id, "amdgpu_xcp_"); ok {
		r.Key, r.Vendor = Key{By: ByXCP, Number: n}, "amd"
		return true
	}
	if n, ok := after(id, "accel"); ok && r.Vendor == "google" { // TPU v4
		r.Key = Key{By: ByAccel, Number: n}
		return true
	}
	if card, share, ok := strings.Cut(id, "-"); ok && r.Vendor == "intel" {
		n, isCard := after(card, "card")
		s, isShare := number(share)
		if isCard && isShare {
			r.Key, r.Shared, r.Replica = Key{By: ByCard, Number: n}, true, s
			return true
		}
	}
	return false
}

// gke reads what follows nvidia0/ in the ids of GKE's plugin.
func (r *Ref) gke(minor int, rest string) bool {
	next := Ref{Key: Key{By: ByMinor, Number: minor}, Vendor: "nvidia", Shared: r.Shared, Replica: r.Replica, Monitor: r.Monitor}
	for rest != "" {
		var word string
		word, rest, _ = strings.Cut(rest, "/")
		if n, ok := after(word, "gi"); ok && next.Part == (Part{}) && !next.Shared {
			next.Part = Part{Of: ByInstance, Instance: n}
		} else if n, ok := after(word, "vgpu"); ok && rest == "" {
			next.Shared, next.Replica = true, n
		} else {
			return false
		}
	}
	*r = next
	return true
}

// after is the number that follows the word, with nothing behind it.
func after(s, word string) (int, bool) {
	rest, ok := strings.CutPrefix(s, word)
	if !ok {
		return 0, false
	}
	return number(rest)
}

// number reads decimal digits, as few as any real number of a device has.
func number(s string) (int, bool) {
	if s == "" || len(s) > 6 || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// cutAt splits at a length, or where the string ends.
func cutAt(s string, n int) (before, after string) {
	n = min(n, len(s))
	return s[:n], s[n:]
}

const uuidLength = 36

// isUUID says whether a string is 32 hexadecimal digits with dashes after the 8th, 12th, 16th and 20th.
func isUUID(s string) bool {
	if len(s) != uuidLength {
		return false
	}
	for i, c := range []byte(s) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if !isHex(c) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// address says whether a string is domain:bus:device.function in hexadecimal. Domains have four
// digits, and up to eight as NVML prints them or behind a VMD bridge.
func address(s string) bool {
	colon := strings.IndexByte(s, ':')
	if colon < 4 || colon > 8 || len(s) != colon+len(":83:00.0") {
		return false
	}
	for i, c := range []byte(s) {
		switch i - colon {
		case 0, 3:
			if c != ':' {
				return false
			}
		case 6:
			if c != '.' {
				return false
			}
		default:
			if !isHex(c) {
				return false
			}
		}
	}
	return s[len(s)-1] <= '7' // functions are three bits
}
