// Package estimate says what a job will probably use, from the results of some of its
// tasks, such as those of Job.Sample. It reads and runs nothing.
package estimate
