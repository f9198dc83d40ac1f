package snapshot

// Done tells whether the data directory is there, and was made by this very restore, of the
// snapshot whose data has that SHA-256. What etcd has written since is in it.
func (o RestoreOptions) Done(sha256 string) bool {
	return readOrigin(o.DataDir) == origin{SHA256: sha256, Member: o.Name, Token: o.Token}
}
