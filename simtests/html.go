package simtests

func timeline(string, history, outcome) []byte { return nil }
