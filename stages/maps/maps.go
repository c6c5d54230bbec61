// Package maps holds the stages that turn attribution maps into something else.
package maps
