fn main() -> std::process::ExitCode {
    ralph::hook::main("Stop")
}
