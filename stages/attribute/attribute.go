// Package attribute holds the attribution methods: stages that make a map of every image which says how much
// each pixel contributes to a class.
package attribute
