// Command gen turns onnx.proto into Go. It needs no protoc: the schema is compiled and the code written by
// libraries, whose versions are pinned by go.mod in this folder.
//
//	go run -C gen . ONNX.PROTO OUTPUT-FOLDER
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// registered is the schema's path in the registry of descriptors that every Go program has. ONNX's own is
// called onnx/onnx.proto or onnx.proto.
const registered = "runexp/onnx.proto"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gen ONNX.PROTO OUTPUT-FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate(schema, folder string) error {
	text, err := os.ReadFile(schema)
	if err != nil {
		return err
	}
	compiler := protocompile.Compiler{
		Resolver: &protocompile.SourceResolver{
			Accessor: protocompile.SourceAccessorFromMap(map[string]string{registered: string(text)}),
		},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), registered)
	if err != nil {
		return err
	}
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{registered},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protoutil.ProtoFromFileDescriptor(files[0])},
	})
	if err != nil {
		return err
	}
	internal_gengo.GenerateFile(plugin, plugin.Files[0])
	for _, f := range plugin.Response().GetFile() {
		out := filepath.Join(folder, filepath.Base(f.GetName()))
		if err := os.WriteFile(out, []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
