package relevance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// TestEveryRuleIsFollowed: of every file rule_*.go a policy or another rule, here or of a method, follows
// something.
func TestEveryRuleIsFollowed(t *testing.T) {
	declared, used := map[string][]string{}, map[string][]string{} // by file, and files by name
	for _, pattern := range []string{"*.go", "../../attribute/*.go", "../lower/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if test, _ := filepath.Match("*_test.go", filepath.Base(file)); test {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if rule, _ := filepath.Match("rule_*.go", file); rule {
				declared[file] = nil
				for _, d := range tree.Decls {
					if f, ok := d.(*ast.FuncDecl); ok {
						declared[file] = append(declared[file], f.Name.Name)
					}
				}
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					used[id.Name] = append(used[id.Name], file)
				}
				return true
			})
		}
	}
	if len(declared) == 0 {
		t.Fatal("there are no files rule_*.go")
	}
	for file, names := range declared {
		if !slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(used[name], func(by string) bool { return by != file })
		}) {
			t.Errorf("%s: nothing follows this rule: name one of %v in the policy of a method in "+
				"stages/attribute", file, names)
		}
	}
}
