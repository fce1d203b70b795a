// Package pages has the files of the window that package inspect/ui serves: plain ES modules,
// one stylesheet and the index page. The report of a job is made of the same modules, as one
// script and one stylesheet in a file that needs no network. They are served as they are written.
//
// The files live here because inspect/ui and fleet both use them and neither imports the other.
package pages
