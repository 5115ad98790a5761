fn main() -> std::process::ExitCode {
    ralph::multicall::main()
}
