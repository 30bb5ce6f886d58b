package zz
import ("testing";"database/sql";"context";sqldriver "database/sql/driver";"path/filepath";"os"
_ "github.com/ncruces/go-sqlite3/driver")
const cols = `r.id, r.namespace, r.tenant, r.caller, r.operation, r.idempotency_key,
       r.status, r.failure, r.fingerprint, r.attempt, r.died, r.max_attempts, r.fence, r.owner,
       r.lease_us, r.lease_until, r.deadline_at, r.on_lapse, r.repeatable_until, r.retention_us,
       r.result_codec, r.result_meta, r.result, r.result IS NOT NULL, r.tombstone,
       r.request, r.error, r.resolution, r.created_at, r.updated_at, r.completed_at, r.expires_at`
const packed = `CAST(CAST(round(unixepoch('subsec') * 1000) AS INTEGER) || '|' || status || '|' || failure || '|' || attempt || '|' || died || '|' || max_attempts || '|' || fence || '|' || lease_us || '|' || retention_us || '|' || on_lapse || '|' || tombstone || '|' || ifnull(lease_until,'') || '|' || ifnull(deadline_at,'')  || '|' || ifnull(repeatable_until,'')|| '|' || created_at || '|' || updated_at|| '|' || ifnull(completed_at,'')|| '|' || ifnull(expires_at,'') AS BLOB)`
const varying = `,namespace,tenant,caller,operation,idempotency_key,fingerprint,owner,result_codec,result_meta,result,request,error,resolution`
const small = `,fingerprint||owner,result,result_meta,request,error,resolution`
func open(b *testing.B) *sql.DB {
	db, err := sql.Open("sqlite3","file:"+filepath.Join(b.TempDir(),"x.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil { b.Fatal(err) }
	b.Cleanup(func(){db.Close()})
	text, _ := os.ReadFile("../migrations/sqlite/00001_records.sql")
	s := string(text)
	s = s[:len(s)-len("-- +goose Down\nDROP TABLE {prefix}records;\nDROP TABLE {prefix}meta;\n")]
	out := ""
	for i:=0;i<len(s);i++ { if i+8<=len(s) && s[i:i+8]=="{prefix}" { out+="onceward_"; i+=7 } else { out+=string(s[i]) } }
	if _, err := db.Exec(out); err != nil { b.Fatal(err) }
	if _, err := db.Exec(`INSERT INTO onceward_records (id,namespace,tenant,caller,operation,idempotency_key,status,failure,fingerprint,attempt,died,max_attempts,fence,owner,lease_us,on_lapse,retention_us,result_codec,tombstone,error,resolution,created_at,updated_at,result,lease_until,deadline_at,completed_at,expires_at)
	VALUES (zeroblob(32),'n','tenant','caller','operation','kkkkkkkkkkkkkkkkkkkkkkkkk','SUCCESS','',zeroblob(33),1,0,5,17000000000000,zeroblob(16),30000000,'REPEAT',3600000000,'raw',0,'','','2026-01-01 00:00:00.000000','2026-01-01 00:00:00.000000',zeroblob(256),'2026-01-01 00:00:00.000000','2026-01-01 00:00:00.000000','2026-01-01 00:00:00.000000','2026-01-01 00:00:00.000000')`); err != nil { b.Fatal(err) }
	return db
}
func run(b *testing.B, q string, n int) {
	db := open(b)
	id := make([]byte,32)
	st, err := db.Prepare(q); if err != nil { b.Fatal(err) }
	b.Run("sql", func(b *testing.B){ b.ReportAllocs()
	for b.Loop() {
		d := make([]any,n); v := make([]sql.RawBytes,n); _=v
		for i := range d { d[i]=new(any) }
		if err := st.QueryRow(id).Scan(d...); err != nil { b.Fatal(err) }
	}})
	b.Run("sqlctx", func(b *testing.B){ b.ReportAllocs()
	ctx,c := context.WithCancel(context.Background()); defer c()
	for b.Loop() {
		d := make([]any,n); v := make([]sql.RawBytes,n); _=v
		for i := range d { d[i]=new(any) }
		if err := st.QueryRowContext(ctx,id).Scan(d...); err != nil { b.Fatal(err) }
	}})
	b.Run("raw", func(b *testing.B){ b.ReportAllocs()
		conn,_ := db.Conn(context.Background())
		var ds sqldriver.StmtQueryContext
		conn.Raw(func(c any) error { s,err := c.(sqldriver.ConnPrepareContext).PrepareContext(context.Background(),q); if err != nil {b.Fatal(err)}; ds=s.(sqldriver.StmtQueryContext); return nil})
		for b.Loop() {
			err := conn.Raw(func(any) error {
				rows, err := ds.QueryContext(context.Background(), []sqldriver.NamedValue{{Ordinal:1,Value:id}})
				if err != nil {return err}
				d := make([]sqldriver.Value,len(rows.Columns()))
				if err := rows.Next(d); err != nil { return err}
				return rows.Close()
			})
			if err != nil { b.Fatal(err) }
		}
		conn.Close()
	})
}
func BenchmarkCols(b *testing.B) { run(b, `SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER), `+cols+` FROM onceward_records r WHERE id=?`, 33) }
func BenchmarkPackedVarying(b *testing.B) { run(b, `SELECT `+packed+varying+` FROM onceward_records r WHERE id=?`, 14) }
func BenchmarkPackedSmall(b *testing.B) { run(b, `SELECT `+packed+small+` FROM onceward_records r WHERE id=?`, 7) }
func BenchmarkOne(b *testing.B) { run(b, `SELECT result FROM onceward_records r WHERE id=?`, 1) }
