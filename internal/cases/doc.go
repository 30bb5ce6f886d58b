// Package cases holds the tests of public bug reports that any store may be behind: each runs through a front door on
// every store of package teststore, two processes where the report has two. Time is moved by moving a record's stored
// times back, and waiting is for events, so that a real store needs no fake clock.
package cases
