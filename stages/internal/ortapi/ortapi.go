// Package ortapi has the functions of ONNX Runtime's C interface that its binding for Go lacks: they tell
// which devices of a plugin are processors. The interface only grows, so its functions have fixed positions.
package ortapi
