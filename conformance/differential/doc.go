// Package differential holds the embedded agent to Claude Code: both play the same case, with
// the same scripted model, workspace and options, and what they did is compared: their
// frames, the gates they asked, what the model read, the structured results, the files
// afterwards and the final results.
//
// A case has the form in which cases of the real agent were recorded. Played live, both
// agents run; else what the real one did comes from the recording. The comparison and the
// table of allowed differences (testdata/allowed.json) are the same for both. No row of the
// table is about a gate, a file, whether a call ran, or is_error: such differences cannot be
// excused.
//
// Here live cases, their player, the comparison and its table; the tests are those of
// agent/embedded and conformance.
package differential
