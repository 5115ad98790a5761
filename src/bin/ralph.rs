fn main() -> std::process::ExitCode {
    ralph::cli::program::main()
}
