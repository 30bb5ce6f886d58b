// Package demo is the accident that Onceward is for, with real parts on loopback: a bank that answers later than its
// customers' patience lasts, and a shop that charges through it, once without protection (V0) and once behind Onceward
// (V3). What happened is read from the ledgers of the services over HTTP, never from the clients.
package demo
