fn main() -> std::process::ExitCode {
    ralph::called::main()
}
