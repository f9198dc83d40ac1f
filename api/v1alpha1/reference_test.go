package v1alpha1

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

var update = flag.Bool("update", false, "write docs/reference instead of comparing it")

// referenced is a page of docs/reference: what it is to say, held against the file.
func referenced(t *testing.T, page, want string) {
	t.Helper()
	path := "../../docs/reference/" + page
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, content(t, path)); diff != "" {
		t.Errorf("%s: -want +got (make generate writes it):\n%s", path, diff)
	}
}

// kindsOfOurs are all, in the order in which a reader meets them.
var kindsOfOurs = []string{"EtcdCluster", "EtcdBackup", "EtcdBackupSchedule", "EtcdRestore", "EtcdRole", "EtcdUser"}

// TestReferenceAPI: docs/reference/api.md has every field of every kind, as the API server knows
// it.
func TestReferenceAPI(t *testing.T) {
	t.Parallel()
	crds := everyDefinition(t)
	if len(crds) != len(kindsOfOurs) {
		t.Fatalf("there are %d kinds, and the page has %d", len(crds), len(kindsOfOurs))
	}
	var page strings.Builder
	page.WriteString("# The API\n\n<!-- Written by make generate, from the schemas in templates/install/crd. -->\n\n" +
		"Every field of every kind, with its type and its default. `kubectl explain` has the same text for the version that is installed.\n" +
		"Below each table stands what the API server refuses beside wrong types and unknown fields, in its words.\n")
	shown := map[string]string{}
	for _, kind := range kindsOfOurs {
		crd := crds[kind]
		names := crd.Spec.Names
		schema := crd.Spec.Validation.OpenAPIV3Schema
		fmt.Fprintf(&page, "\n## %s\n\n`%s`, `kubectl get %s`", kind, SchemeGroupVersion, names.Plural)
		if len(names.ShortNames) > 0 {
			fmt.Fprintf(&page, " or `kubectl get %s`", names.ShortNames[0])
		}
		fmt.Fprintf(&page, ". %s\n", line(schema.Description))
		for _, part := range []string{"spec", "status"} {
			fmt.Fprintf(&page, "\n### %s of an %s\n\n| field | type | |\n| --- | --- | --- |\n", part, kind)
			for _, f := range fieldsOf(schema, part, "of an "+kind, shown) {
				fmt.Fprintf(&page, "| `%s` | %s | %s |\n", f.path, f.kind, f.text)
			}
		}
		if rules := refusals(schema); len(rules) > 0 {
			fmt.Fprintf(&page, "\n### What is refused of an %s\n\n", kind)
			for _, rule := range rules {
				fmt.Fprintf(&page, "- %s\n", cell(rule))
			}
		}
	}
	referenced(t, "api.md", page.String())
}

type fieldRow struct{ path, kind, text string }

// fieldsOf spec or status, a field before those within it. Of objects that are shown already, the
// place is said instead.
func fieldsOf(schema *apiextensions.JSONSchemaProps, part, of string, shown map[string]string) []fieldRow {
	var rows []fieldRow
	var visit func(path string, s *apiextensions.JSONSchemaProps, required bool)
	visit = func(path string, s *apiextensions.JSONSchemaProps, required bool) {
		row := fieldRow{path: path, kind: typeOf(s), text: cell(line(s.Description))}
		if required {
			row.kind += ", required"
		}
		if s.Default != nil {
			row.kind += fmt.Sprintf(", default `%v`", *s.Default)
		}
		if strings.Contains(path, ".") {
			rows = append(rows, row)
		}
		if kubernetes.MatchString(strings.TrimSuffix(path, "[]")) || kubernetes.MatchString(path+"[]") || kubernetes.MatchString(path) {
			return
		}
		if s.Items != nil && s.Items.Schema != nil {
			s, path = s.Items.Schema, path+"[]"
		}
		within, err := json.Marshal(s.Properties)
		switch place := shown[string(within)]; {
		case err != nil:
			panic(err)
		case place != "":
			rows[len(rows)-1].text += " It has the fields of " + place + "."
			return
		case shown != nil && len(s.Properties) > 1:
			shown[string(within)] = "`" + path + "` " + of
		}
		for _, name := range sortedNames(s.Properties) {
			field := s.Properties[name]
			visit(path+"."+name, &field, slices.Contains(s.Required, name))
		}
	}
	field := schema.Properties[part]
	visit(part, &field, true)
	return rows
}

func sortedNames(properties map[string]apiextensions.JSONSchemaProps) []string {
	var names []string
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// typeOf is the type of a field in the words of people.
func typeOf(s *apiextensions.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "quantity"
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(values, ", ")
	case s.Format == "date-time":
		return "time"
	case s.Type == "array":
		return "list of " + strings.TrimSuffix(typeOf(s.Items.Schema), "s") + "s"
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + strings.TrimSuffix(typeOf(s.AdditionalProperties.Schema), "y") + map[bool]string{true: "ies", false: "s"}[s.AdditionalProperties.Schema.XIntOrString]
	default:
		return s.Type
	}
}

// refusals are the messages of all rules, each once.
func refusals(schema *apiextensions.JSONSchemaProps) []string {
	var all []string
	for _, rule := range schema.XValidations {
		all = append(all, rule.Message)
	}
	walk(schema, "", func(_ string, s *apiextensions.JSONSchemaProps) {
		for _, rule := range s.XValidations {
			all = append(all, rule.Message)
		}
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// line is a text without line breaks.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

// cell is a text within a table or list.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(text)
}

// TestReferenceReasons: docs/reference/reasons.md has every reason, with what it means and what to
// do, as the comment of its constant says.
func TestReferenceReasons(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString("# Reasons\n\n<!-- Written by make generate, from api/v1alpha1/conditions*.go. -->\n\n" +
		"A reason is one word in a condition, an event, a metric and the log; it is the same in all of them. The message beside it names\n" +
		"members, volumes and versions. `kubectl describe` shows both. Where a person must act, the condition `Stalled` is True.\n")
	for _, group := range []struct{ title, file, after string }{
		{"Of an EtcdCluster", "conditions.go", ""},
		{"Of an EtcdBackup and an EtcdBackupSchedule", "conditions_backup.go", "They have some of the reasons above as well. A failed attempt has the reason that its agent gives, such as `AccessDenied` or `NoSuchBucket`:\n[stores.md](../stores.md#when-it-fails) has those of stores.\n"},
		{"Of an EtcdRestore", "conditions_restore.go", "It has some of the reasons of an EtcdCluster as well.\n"},
		{"Of an EtcdRole and an EtcdUser", "conditions_users.go", "They have `InvalidSpec` of an EtcdCluster and `ClusterNotFound` of an EtcdBackup as well: [auth.md](../auth.md#what-it-says-and-what-to-do).\n"},
	} {
		fmt.Fprintf(&page, "\n## %s\n\n| reason | meaning | what to do |\n| --- | --- | --- |\n", group.title)
		for _, r := range documentedReasons(t, group.file) {
			fmt.Fprintf(&page, "| `%s` | %s | %s |\n", r.value, cell(linked(r.meaning)), cell(linked(r.advice)))
		}
		if group.after != "" {
			page.WriteString("\n" + group.after)
		}
	}
	referenced(t, "reasons.md", page.String())
}

type documentedReason struct{ value, meaning, advice string }

// documentedReasons of a file, in its order. One without a meaning, or without what to do, fails
// the test.
func documentedReasons(t *testing.T, file string) []documentedReason {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var all []documentedReason
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		meaning, advice, err := explained(spec.Names[0].Name, spec.Doc.Text())
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		all = append(all, documentedReason{value, meaning, advice})
		return true
	})
	if len(all) == 0 {
		t.Fatalf("%s has no reasons", file)
	}
	return all
}

// explained are the two parts of a comment: what the reason means, and what to do.
func explained(name, doc string) (meaning, advice string, err error) {
	meaning, advice, _ = strings.Cut(doc, "\n\nWhat to do: ")
	meaning, is := strings.CutPrefix(line(meaning), name+": ")
	advice = line(advice)
	switch {
	case !is || meaning == "":
		return "", "", fmt.Errorf("%s has no comment that begins with %q", name, name+": ")
	case advice == "":
		return "", "", fmt.Errorf("the comment of %s has no paragraph %q", name, "What to do: ")
	}
	return sentence(meaning), sentence(advice), nil
}

// sentence has a capital letter at its beginning, unless it is the name of a field.
func sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if strings.ContainsAny(word, ".-") && !strings.HasSuffix(word, ".") || word == "etcd" || word == "kubectl" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

var (
	pageNamed  = regexp.MustCompile(`\bdocs/([-\w]+\.md)(#[-\w]+)?`)
	fieldNamed = regexp.MustCompile(`\b(?:spec|status|metadata)(?:\.[a-zA-Z]+)+(?:: [A-Z]\w+)?`)
)

// linked turns the pages that a text names into links, and the names of fields into code.
func linked(text string) string {
	text = fieldNamed.ReplaceAllString(text, "`$0`")
	return pageNamed.ReplaceAllString(text, "[$1](../$1$2)")
}

func TestExplained(t *testing.T) {
	t.Parallel()
	type parts struct{ Meaning, Advice, Err string }
	cases := map[string]struct {
		reason string
		args   string
		want   parts
	}{
		"Both": {
			reason: "the comment has two paragraphs",
			args:   "ReasonA: a member\nis down.\n\nWhat to do: look at\nspec.replicas.\n",
			want:   parts{Meaning: "A member is down.", Advice: "Look at spec.replicas."},
		},
		"NoAdvice":  {reason: "one paragraph alone", args: "ReasonA: a member is down.\n", want: parts{Err: `the comment of ReasonA has no paragraph "What to do: "`}},
		"NoMeaning": {reason: "of another constant", args: "ReasonB: x.\n\nWhat to do: y.\n", want: parts{Err: `ReasonA has no comment that begins with "ReasonA: "`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got parts
			var err error
			if got.Meaning, got.Advice, err = explained("ReasonA", tc.args); err != nil {
				got.Err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
