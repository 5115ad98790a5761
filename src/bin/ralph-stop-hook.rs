fn main() {
    ralph::hook::main("Stop");
}
