"""Builds test programs that hold many mutants each, from the objects of a release build.

A source with drawn mutants is written anew below the folder `work` and compiled with the command of
the release build, at -O1; the other objects, those of the tests among them, are the release
build's. What a mutant breaks in compiling is read from the compiler's messages, and the mutant is
dropped.
"""

import json
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from glob import glob

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PLACE = re.compile(r"^(?:In file included from )?([^\s:]+):(\d+)")


def mutated(source, numbered):
    """`source` (bytes) with the mutants of `numbered` [(number, Mutant)] in it, and the lines of
    each: {number: range}. Mutants do not overlap; several may share a `constexpr`."""
    edits = [(m.start, m.end, m.text.replace("@ID@", str(i)), i) for i, m in numbered]
    keywords = {m.constexpr for _, m in numbered if m.constexpr}
    edits += [(start, end, "const", None) for start, end in keywords]
    pieces, at, line, lines = [], 0, 1, {}
    for start, end, text, number in sorted(edits):
        before = source[at:start].decode()
        line += before.count("\n")
        if number is not None:
            lines[number] = range(line, line + text.count("\n") + 1)
        line += text.count("\n")
        pieces += [before, text]
        at = end
    return "".join(pieces) + source[at:].decode(), lines


def broken_by(output, lines_of):
    """The mutants that the compiler's messages point at. `lines_of`: {path: {number: range}}."""

    def at(text):
        place = PLACE.match(text.strip())
        if not place:
            return set()
        ranges = lines_of.get(os.path.abspath(place[1]), {})
        return {number for number, lines in ranges.items() if int(place[2]) in lines}

    dropped, block, found = set(), set(), True
    for text in output.splitlines():
        if " error: " in text:
            dropped |= set() if found else block
            block, found = set(), bool(at(text))
            dropped |= at(text)
        block |= at(text)
    return dropped | (set() if found else block)


def before_end_of_function(output, lines_of):
    """For each function said to end without a result the mutant above its end, if it was the last
    statement that a mutant removed."""
    dropped = set()
    for path, line in re.findall(r"^([^\s:]+):(\d+):\d+: error: control reaches end", output, re.M):
        ranges = lines_of.get(os.path.abspath(path), {})
        above = [number for number, lines in ranges.items() if lines.stop <= int(line)]
        dropped |= set(above and [max(above, key=lambda number: ranges[number].stop)])
    return dropped


class Schemata:
    """The programs of one draw. `drawn`: {number: Mutant}."""

    def __init__(self, build, work, drawn):
        self.build, self.work, self.drawn = build, work, dict(drawn)
        self.dropped = set()
        self.text_of = {}  # as drawn from, whatever becomes of the files meanwhile
        for name in {m.file for m in self.drawn.values()}:
            with open(os.path.join(ROOT, name), "rb") as file:
                self.text_of[name] = file.read()
        with open(os.path.join(build, "compile_commands.json")) as file:
            self.commands = json.load(file)

    def sources_of(self, command):
        """The sources of an object: one file, or those of a file that CMake joined."""
        if "/Unity/" not in command["file"]:
            return [command["file"]]
        with open(command["file"]) as file:
            return re.findall(r'#include "([^"]+)"', file.read())

    def write(self, path):
        """Writes the mutated form of `path`. Returns where, and the lines of its mutants."""
        name = os.path.relpath(path, ROOT)
        here = [(i, m) for i, m in self.drawn.items() if m.file == name and i not in self.dropped]
        if name not in self.text_of:
            return path, {}
        text, lines = mutated(self.text_of[name], here)
        there = os.path.join(self.work, "source", name)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        with open(there, "w") as file:
            file.write(text)
        return there, lines

    def compile(self, command):
        """Compiles an object with its mutants, without those that do not compile. Returns where."""
        object_file = os.path.join(self.work, command["output"].replace(self.build + "/", ""))
        os.makedirs(os.path.dirname(object_file), exist_ok=True)
        words = [w for w in shlex.split(command["command"]) if not w.startswith("-W")]
        words[words.index("-o") + 1] = object_file
        while True:
            lines_of = dict(self.write(path) for path in self.sources_of(command))
            joined = object_file + ".joined.cpp"
            with open(joined, "w") as file:
                file.writelines(f'#include "{path}"\n' for path in lines_of)
            words[words.index("-c") + 1] = joined
            extra = ["-O1", "-include", os.path.join(HERE, "mutation.hpp"), "-fmax-errors=0"]
            extra += [
                "-Werror=return-type",
                "-Werror=return-local-addr",
                "-fdiagnostics-color=never",
            ]
            done = subprocess.run(
                words + extra,
                cwd=self.build,
                capture_output=True,
                text=True,
                start_new_session=True,
            )
            if done.returncode == 0:
                return object_file
            broken = broken_by(done.stderr, lines_of) - self.dropped
            broken = broken or before_end_of_function(done.stderr, lines_of) - self.dropped
            if not broken:
                raise RuntimeError(f"{command['file']}: no mutant explains\n{done.stderr[:4000]}")
            self.dropped |= broken

    def libraries(self):
        """{library of the release build: the same with mutants}, of rooms that have any."""
        files = {os.path.join(ROOT, m.file) for m in self.drawn.values()}
        rooms = {}
        for command in self.commands:
            room = re.match(
                r"(.*/)?((?:model|sim|scenarios)/)CMakeFiles/(\w+)\.dir/", command["output"]
            )
            if room:
                rooms.setdefault(f"{room[2]}lib{room[3]}.a", []).append(command)
        result = {}

        def object_of(command):
            if files & set(self.sources_of(command)):
                return self.compile(command)
            return os.path.join(self.build, command["output"])

        with ThreadPoolExecutor(2) as pool:
            for library, commands in rooms.items():
                if not any(files & set(self.sources_of(c)) for c in commands):
                    continue
                objects = list(pool.map(object_of, commands))
                result[library] = os.path.join(self.work, os.path.basename(library))
                if os.path.exists(result[library]):
                    os.remove(result[library])
                subprocess.run(["ar", "qc", result[library], *objects], check=True)
                print(f"{library}: {len(self.dropped)} mutants dropped so far", flush=True)
        return result

    def kept_libraries(self):
        """The libraries that an earlier run of the same draw built."""
        sources = "".join(
            open(path).read() for path in glob(f"{self.work}/source/**/*.cpp", recursive=True)
        )
        built = {int(number) for number in re.findall(r"mutation::on\((\d+)\)", sources)}
        self.dropped = set(self.drawn) - built
        return {
            name: os.path.join(self.work, os.path.basename(name))
            for name in {os.path.relpath(p, self.build) for p in glob(f"{self.build}/*/*.a")}
            if os.path.exists(os.path.join(self.work, os.path.basename(name)))
        }

    def object_of(self, name):
        """One of the objects that a mutated program has besides."""
        source, result = os.path.join(HERE, f"{name}.cpp"), os.path.join(self.work, f"{name}.o")
        subprocess.run(["c++", "-std=c++20", "-I", ROOT, "-c", source, "-o", result], check=True)
        return result

    def programs(self, names, keep=False):
        """Builds the programs `names` of the build, such as "tests/test_sim", with `keep` from the
        libraries there are. Returns {name without folder: path}."""
        libraries = self.kept_libraries() if keep else self.libraries()
        switch, listener = self.object_of("switch"), self.object_of("listener")
        plugins = os.path.join(self.work, "programs", "scenarios")  # beside tools/ddpsim
        os.makedirs(os.path.dirname(plugins), exist_ok=True)
        if not os.path.lexists(plugins):
            os.symlink(os.path.join(self.build, "scenarios"), plugins)
        result = {}
        for target in names:
            commands = subprocess.run(
                ["ninja", "-t", "commands", target],
                cwd=self.build,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            links = [c for c in commands.splitlines() if f" -o {target} " in c]
            link = links[-1].removeprefix(": && ").split(" && ")[0]
            words = [libraries.get(w, w) for w in shlex.split(link)]
            name = os.path.basename(target)
            result[name] = os.path.join(self.work, "programs", target)
            os.makedirs(os.path.dirname(result[name]), exist_ok=True)
            output = words.index("-o") + 1
            objects = [switch, listener] if name.startswith("test_") else [switch]
            words[output : output + 1] = [result[name], *objects]  # before any library
            subprocess.run(words, cwd=self.build, check=True)
        return result
