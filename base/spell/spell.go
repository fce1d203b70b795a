package spell

// longest is the length up to which words are compared: a longer word is not a typing
// mistake.
const longest = 64

// Distance is how many bytes are put in, left out, replaced or swapped with the next
// one between two words, without a change inside of a swap (optimal string alignment).
// For words above 64 bytes it is at least their length, which is far.
func Distance(a, b string) int {
	if max(len(a), len(b)) > longest {
		return max(len(a), len(b))
	}
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		older, old, row = old, row, older
		row[0] = i + 1
		for j := range len(b) {
			cost := old[j]
			if a[i] != b[j] {
				cost = 1 + min(old[j], row[j], old[j+1])
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				cost = min(cost, older[j-1]+1)
			}
			row[j+1] = cost
		}
	}
	return row[len(b)]
}
