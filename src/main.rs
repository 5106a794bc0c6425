//! The `planish` program: hands over to the command line.

fn main() -> std::process::ExitCode {
    planish::cli::main()
}
