package measure

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Print prints figures as a line of JSON.
func Print(figures any) error {
	line, err := json.Marshal(figures)
	if err == nil {
		fmt.Println(string(line))
	}
	return err
}

// Median is the median of a list that has elements, and sorts it.
func Median[T cmp.Ordered](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}
