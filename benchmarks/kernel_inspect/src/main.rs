//! `kernel-inspect TABLE`, or `-` for one in each line of standard input: the newest version,
//! protocol and metadata that delta-kernel-rs reads.

use std::process::ExitCode;
use std::sync::Arc;

use delta_kernel::{try_parse_uri, KernelResult, Snapshot};
use delta_kernel_default_engine::storage::store_from_url;
use delta_kernel_default_engine::DefaultEngine;

fn main() -> ExitCode {
    let Some(asked) = std::env::args().nth(1) else {
        eprintln!("usage: kernel-inspect TABLE | -");
        return ExitCode::from(2);
    };
    let tables: Vec<String> = match asked.as_str() {
        "-" => std::io::stdin().lines().map_while(Result::ok).collect(),
        table => vec![table.to_string()],
    };
    match inspect(&tables) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// All tables with one engine, so that its threads are started once.
fn inspect(tables: &[String]) -> KernelResult<()> {
    let Some(first) = tables.first() else {
        return Ok(());
    };
    let store = store_from_url(&try_parse_uri(first)?)?;
    let engine = Arc::new(DefaultEngine::builder(store).build());
    for table in tables {
        let snapshot = Snapshot::builder_for(try_parse_uri(table)?).build(engine.as_ref())?;
        let found = snapshot.table_configuration();
        println!("{table}: version {}", snapshot.version());
        println!("{:#?}", found.protocol());
        println!("{:#?}", found.metadata());
    }
    Ok(())
}
