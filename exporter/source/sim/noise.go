package sim

// everyone is a word of a seed that no index is: what devices share is seeded by it.
const everyone = 1 << 32

// mix makes one random-looking number of some words, always the same one.
// The steps are those of splitmix64 (Vigna, public domain).
func mix(words ...uint64) uint64 {
	var x uint64
	for _, w := range words {
		x = scramble(x + w)
	}
	return x
}

func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// between picks a number from low to high, both included, from the bits of a mix.
func between(random uint64, low, high int64) int64 {
	return low + int64(random%uint64(high-low+1))
}

// triangle swings from -1000 to 1000 and back once a period.
func triangle(t, period int64) int64 {
	x := t % period * 4000 / period
	switch {
	case x < 1000:
		return x
	case x < 3000:
		return 2000 - x
	}
	return x - 4000
}
