package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"os"
	"path"
	"runtime/debug"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("sbom: ")
	version := flag.String("version", "", "the version of the program, and of the modules of this repository in it")
	at := flag.String("time", "", "when the program's source was made, as 2006-01-02T15:04:05Z")
	flag.Parse()
	if flag.NArg() != 1 || *version == "" {
		log.Fatal("usage: sbom -version VERSION [-time TIME] PROGRAM")
	}
	info, err := buildinfo.ReadFile(flag.Arg(0))
	if err == nil {
		err = write(os.Stdout, info, *version, *at)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// bill, component and property are those of CycloneDX.
type bill struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp,omitempty"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// write prints the bill of a program. A module that the program has from a directory of the
// repository has the program's version.
func write(to io.Writer, info *debug.BuildInfo, version, at string) error {
	if info.Path == "" {
		return errors.New("the program does not name its modules: build it with modules")
	}
	b := bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{at, of("application", info.Main.Path, version)}}
	b.Metadata.Component.Name = path.Base(info.Path)
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "vcs.revision" {
			b.Metadata.Component.Properties = append(b.Metadata.Component.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	b.Components = []component{of("library", "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		is := *m
		if m.Replace != nil {
			is = *m.Replace
		}
		if strings.HasPrefix(is.Path, ".") {
			is.Path, is.Version = m.Path, version
		}
		c := of("library", is.Path, cmp.Or(is.Version, version))
		if is.Sum != "" {
			c.Properties = []property{{"go:sum", is.Sum}}
		}
		b.Components = append(b.Components, c)
	}
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(b)
}

func of(kind, module, version string) component {
	purl := "pkg:golang/" + module + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: kind, Ref: purl, Name: module, Version: version, PURL: purl}
}
