fn main() -> std::process::ExitCode {
    planish::cli::main()
}
