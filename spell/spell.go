// Package spell finds the known word a misspelt one was meant to be.
package spell

// Nearest returns the word of known at the smallest edit distance from word, or "" when none is
// near enough to be worth suggesting (more than a third of its letters differ).
func Nearest(word string, known []string) string {
	best, found := max(len(word)/3, 1)+1, ""
	for _, k := range known {
		if d := distance(word, k); d < best && d < len(word) {
			best, found = d, k
		}
	}
	return found
}

// Suggest returns `; did you mean "x"?` for the nearest known word, or "" when there is none.
func Suggest(word string, known []string) string {
	if n := Nearest(word, known); n != "" {
		return `; did you mean "` + n + `"?`
	}
	return ""
}

// distance counts the insertions, deletions, substitutions and swaps of neighbours that lead
// from a to b.
func distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range len(b) {
			kept := above[j]
			if a[i] != b[j] {
				kept++
			}
			row[j+1] = min(kept, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
