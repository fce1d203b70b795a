// Package queue has the interfaces that programs share when they run one job together: a
// [Queue], which leases its tasks, and [Files], which keep large files. [NewMemory] and
// [DirFiles] are for programs of one process or of one directory. Package queuetest has the
// tests that implementations for more machines must pass.
//
// Not in this package: the leases of a job, which are package fleet's.
package queue
