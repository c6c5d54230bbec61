// Package model holds the stages that read models and ask them.
package model
