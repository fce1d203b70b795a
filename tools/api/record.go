package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

// packageSet has packages by their paths below the main module.
type packageSet map[string]*types.Package

func (s packageSet) paths() []string { return slices.Sorted(maps.Keys(s)) }

// load reads the packages of a checkout from what the compiler has exported.
func load(root string, paths []string) (packageSet, error) {
	byModule := map[string][]string{}
	for _, path := range paths {
		dir := moduleOf(root, path)
		byModule[dir] = append(byModule[dir], modulePath+"/"+path)
	}
	set := packageSet{}
	for _, dir := range slices.Sorted(maps.Keys(byModule)) {
		if err := set.add(dir, byModule[dir]); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// moduleOf is the directory of the module that has a package. Without a go.mod below root it is
// root, also for a package that is gone.
func moduleOf(root, path string) string {
	for at := path; at != "."; at = filepath.Dir(at) {
		dir := filepath.Join(root, at)
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	return root
}

// add loads packages of one module.
func (s packageSet) add(module string, patterns []string) error {
	loaded, err := packages.Load(&packages.Config{
		Dir: module, Mode: packages.NeedName | packages.NeedTypes,
		Env: append(os.Environ(), "GOWORK=off"), // go.work does not have the modules of contrib
	}, patterns...)
	if err != nil {
		return err
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.PkgPath, e))
		}
		s[strings.TrimPrefix(p.PkgPath, modulePath+"/")] = p.Types
	}
	return err
}

// write makes a record: a ZIP file with the export data of each package, which also has what the
// package needs of others. Equal packages make equal files.
func write(name string, set packageSet) error {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, flate.BestCompression) })
	for _, path := range set.paths() {
		entry, err := z.Create(path)
		if err != nil {
			return err
		}
		// An empty file set: positions are of this machine, and nothing reads them.
		if err := gcexportdata.Write(entry, token.NewFileSet(), set[path]); err != nil {
			return fmt.Errorf("record %s: %w", path, err)
		}
	}
	return errors.Join(z.Close(), os.WriteFile(name, out.Bytes(), 0o644))
}

// read is the inverse of write.
func read(name string) (packageSet, error) {
	z, err := zip.OpenReader(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer func() { _ = z.Close() }() // it is only read
	set := packageSet{}
	for _, f := range z.File {
		if set[f.Name], err = readOne(f); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, f.Name, err)
		}
	}
	return set, nil
}

func readOne(f *zip.File) (*types.Package, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return gcexportdata.Read(bytes.NewReader(data), token.NewFileSet(), map[string]*types.Package{}, modulePath+"/"+f.Name)
}
