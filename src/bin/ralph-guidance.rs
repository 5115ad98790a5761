fn main() -> std::process::ExitCode {
    ralph::cli::guidance_program::main()
}
