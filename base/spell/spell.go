package spell

// longest is the length up to which words are compared: what is longer was no
// slip of the finger.
const longest = 64

// Distance is Levenshtein's distance between two words, in bytes. For words
// above 64 bytes it is at least their length, which is far.
func Distance(a, b string) int {
	if max(len(a), len(b)) > longest {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
