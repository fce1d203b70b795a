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
	"slices"
	"strings"

	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

// packageSet has packages by their paths below the module.
type packageSet map[string]*types.Package

func (s packageSet) paths() []string { return slices.Sorted(maps.Keys(s)) }

// load reads the packages of a checkout from what the compiler has exported.
func load(root string, paths []string) (packageSet, error) {
	var patterns []string
	for _, path := range paths {
		patterns = append(patterns, modulePath+"/"+path)
	}
	loaded, err := packages.Load(&packages.Config{Dir: root, Mode: packages.NeedName | packages.NeedTypes}, patterns...)
	if err != nil {
		return nil, err
	}
	set := packageSet{}
	for _, p := range loaded {
		for _, e := range p.Errors {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.PkgPath, e))
		}
		set[strings.TrimPrefix(p.PkgPath, modulePath+"/")] = p.Types
	}
	return set, err
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
