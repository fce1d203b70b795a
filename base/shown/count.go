package shown

import (
	"fmt"
	"math"
	"strings"
)

// Count is a number of things in words: "1 task", "2 tasks", "2 entries", "3 processes".
// one is the English name of a single thing. Words may follow its noun after " of " or " for ":
// "call of a tool" becomes "2 calls of a tool".
func Count[N ~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	noun, rest := one, ""
	for _, after := range []string{" of ", " for "} {
		if i := strings.Index(noun, after); i >= 0 {
			noun, rest = one[:i], one[i:]
		}
	}
	return fmt.Sprintf("%d %s%s", n, plural(noun), rest)
}

func plural(noun string) string {
	vowel := func(b byte) bool { return strings.IndexByte("aeiou", b) >= 0 }
	switch n := len(noun); {
	case n > 1 && noun[n-1] == 'y' && !vowel(noun[n-2]):
		return noun[:n-1] + "ies"
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"), strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "sh"):
		return noun + "es"
	}
	return noun + "s"
}

// Verb is the form of a verb after [Count]: "has" for 1, else "have".
func Verb[N ~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Amount is an amount of money with two significant digits, and from 1 on with two places.
func Amount(v float64) string {
	if v == 0 || v >= 1 {
		return fmt.Sprintf("%.2f", v)
	}
	places := 1 - int(math.Floor(math.Log10(v)))
	return fmt.Sprintf("%.*f", min(places, 9), v)
}
