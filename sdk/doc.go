// Package sdk drives coding agents: Claude Code, qodercli, or an agent in this
// process. It is the package most programs import.
//
//	answer := sdk.Query(ctx, sdk.Input("What is in this repo?"), nil)
//	for text, err := range sdk.TextDeltas(answer) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(text)
//	}
//
// [Query] and [Run] are for one prompt, [RunAs] for one whose answer has the
// shape of a Go type, [Client] for conversations. [Options] says everything
// else: which agent, what it may do, and whom it asks. [LoadOptions] reads it
// from YAML or JSON, and [Options.Plan] shows what it launches.
//
// What lives here: the public contract in the vendors' terms. What must not:
// anything that a session needs to work; that is package runtime and below.
package sdk
