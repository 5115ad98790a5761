fn main() -> std::process::ExitCode {
    ralph::cli::loops::guidance_program::main()
}
