fn main() {
    ralph::hook::main("SessionStart");
}
