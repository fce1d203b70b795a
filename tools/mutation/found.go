package mutation

import (
	"regexp"
	"strconv"
)

var (
	afterHistories = regexp.MustCompile(`seed \d+, after (\d+) histor`)
	watchdogSeed   = regexp.MustCompile(`simtests: Test[^\s,]+, seed \d*?(\d{1,6}),`)
	crashedBubble  = regexp.MustCompile(`(?s)^panic: .*?synctest bubble (\d+)`) // one for each history
	assertion      = regexp.MustCompile(`(?m)^\s+Error Trace:`)
	oracle         = regexp.MustCompile(`[a-z_]+_test\.go:\d+: ([a-z-]+):`)
)

// Found is how many histories an exploration took to find what was broken, and the oracle that
// found it, by the output of its test.
func Found(out string) (took, by string) {
	took, by = "?", "the end of the test's process"
	if assertion.MatchString(out) {
		by = "a check of the scenario's own"
	}
	if m := afterHistories.FindStringSubmatch(out); m != nil {
		took = m[1]
	} else if m := watchdogSeed.FindStringSubmatch(out); m != nil {
		n, _ := strconv.ParseUint(m[1], 10, 63) // digits
		took, by = strconv.FormatUint(n+1, 10), "watchdog"
	} else if m := crashedBubble.FindStringSubmatch(out); m != nil {
		took, by = m[1], "panic"
	}
	for _, m := range oracle.FindAllStringSubmatch(out, -1) {
		if m[1] != "sim" { // what the exploration says of itself
			by = m[1]
			break
		}
	}
	return took, by
}
