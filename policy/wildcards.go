package policy

// wildcards matches a pattern of n elements with a text of m. many says that an
// element stands for any number of the text's, and one whether it stands for
// that one. It takes n*m steps at most, whatever an agent sends.
func (w *work) wildcards(n, m int, many func(i int) bool, one func(i, j int) bool) bool {
	i, j, back, from := 0, 0, -1, 0
	for j < m {
		switch {
		case !w.spend(1):
			return false
		case i < n && many(i):
			back, from = i, j
			i++
		case i < n && one(i, j):
			i++
			j++
		case back >= 0:
			from++
			i, j = back+1, from
		default:
			return false
		}
	}
	for i < n && many(i) {
		i++
	}
	return i == n
}
