import PredicateLanguage
import RelayModel
import Testing

@testable import belfry

@Suite struct PredicateLineTests {
    @Test(arguments: [
        (#"{"predicate":"price < 100","record":{"price":99}}"#, #"{"result":true}"#),
        (#"{"predicate":"price < %@","args":[1],"record":{"price":99}}"#, #"{"result":false}"#),
        (#"{"predicate":"SELF > 1","records":[1,2,3]}"#, #"{"count":2}"#),
        (
            #"{"predicate":"r.$k == 1","vars":{"k":"a"},"record":{"r":{"a":1}}}"#,
            #"{"result":true}"#
        ),
        (
            #"{"filterBy":{"comparator":"EQUALS","fieldName":"a","fieldValue":{"value":1}},"record":{"a":1}}"#,
            #"{"result":true}"#
        ),
        (
            #"{"predicate":"a ==","record":{}}"#,
            #"{"error":{"stage":"parse","offset":4,"length":0,"found":"the end of the text","expected":"a field, a constant or %@","reason":"a value is missing"}}"#
        ),
        (
            #"{"predicate":"TRUEPREDICATE AND age > 'x'","record":{"age":3}}"#,
            #"{"error":{"stage":"evaluate","offset":18,"length":9,"found":"`age > 'x'`","reason":"a number cannot be ordered against a text"}}"#
        ),
        (
            #"{"predicate":1}"#,
            #"{"error":{"stage":"parse","offset":0,"length":0,"found":"an integer","expected":"a string","reason":"a text is expected"}}"#
        ),
        (
            #"{"record":{}}"#,
            #"{"error":{"stage":"parse","offset":0,"length":0,"found":"nothing","expected":"{\"predicate\", \"query\", \"where\" or \"filterBy\": …, \"args\": […], \"record\": {…}}","path":"predicate","reason":"one of predicate, query, where, filterBy is required"}}"#
        ),
        (
            "{]",
            #"{"error":{"stage":"parse","offset":1,"length":0,"found":"`]`","expected":"JSON","reason":"the line is not JSON: a member name is expected"}}"#
        ),
    ])
    func `evaluate answers each line with one line`(line: String, answer: String) {
        check(.evaluate, nil, line, answer)
    }

    @Test(arguments: [
        (
            #"{"predicate":"a = %@","args":[true]}"#,
            #"{"valid":true,"canonical":"a == 1","dialect":"nspredicate"}"#
        ),
        (
            #"{"predicate":"a BETWEEN {1}"}"#,
            #"{"valid":false,"error":{"stage":"check","offset":10,"length":3,"found":"a list of 1","expected":"{lower, upper}","reason":"BETWEEN needs a list of two bounds"}}"#
        ),
        (
            #"{"predicate":"a == 1","schema":{"b":"INT64"}}"#,
            #"{"valid":false,"error":{"stage":"check","offset":0,"length":1,"found":"`a`","expected":"one of b","reason":"the field a is unknown"}}"#
        ),
    ])
    func `check answers each line with one line`(line: String, answer: String) {
        check(.check, nil, line, answer)
    }

    @Test func `a dialect given as an option applies to all lines`() {
        check(
            .check, .ckquery, #"{"predicate":"a = 1 OR b = 2"}"#,
            #"{"valid":false,"error":{"stage":"check","offset":0,"length":5,"found":"`a = 1`","expected":"AND","hint":"save one subscription for each alternative, or use IN","reason":"CloudKit: OR is not supported"}}"#
        )
    }

    @Test func `a trace is added to the result`() {
        check(
            .trace, nil, #"{"predicate":"price < 100","record":{"price":120}}"#,
            #"{"result":false,"trace":[{"comparison":"price < 100","left":120,"right":100,"outcome":false,"reason":"price is 120"}]}"#
        )
    }

    @Test func `people get the place and a hint`() {
        let answer = PredicateLine(dialect: nil, task: .check).answer(
            to: Array(#"{"predicate":"in == 1"}"#.utf8), now: nil)
        #expect(
            answer.text == """
                in == 1
                ^~
                parse error: in is a reserved word
                  found: `in`
                  expected: a field, a constant or %@
                  hint: write a field of that name as #in
                """)
    }

    @Test func `lines are read completely however the input is cut`() {
        // The byte order mark that some editors write may arrive in a chunk of its own, and does
        // not end the input.
        let text = Array("\u{FEFF}one\n\ntwo\r\n  \nthree".utf8)
        for size in 1...text.count {
            var buffer = LineBuffer()
            var lines: [LineBuffer.Line] = []
            for start in stride(from: 0, to: text.count, by: size) {
                buffer.append(Array(text[start..<min(start + size, text.count)]))
                while let line = buffer.next() { lines.append(line) }
            }
            buffer.finish()
            while let line = buffer.next() { lines.append(line) }
            #expect(
                lines == [
                    .whole(Array("one".utf8)), .whole(Array("two\r".utf8)),
                    .whole(Array("three".utf8)),
                ])
        }
    }

    @Test func `a line beyond the limit is dropped and answered, and the next one is read`() {
        var buffer = LineBuffer()
        var lines: [LineBuffer.Line] = []
        let chunk = [UInt8](repeating: 0x61, count: 1 << 20)
        for _ in 0..<10 {
            buffer.append(chunk)
            while let line = buffer.next() { lines.append(line) }
        }
        buffer.append(Array("\nnext\n".utf8))
        while let line = buffer.next() { lines.append(line) }
        #expect(lines == [.tooLong, .whole(Array("next".utf8))])
    }

    /// A parsed condition is cached for the following lines by its bytes, because Minapp and Realm
    /// compare bytes.
    @Test func `two spellings of one letter make two conditions`() throws {
        let lines = PredicateLine(dialect: nil, task: .evaluate)
        for (spelling, holds) in [("\u{E9}", false), ("e\u{301}", true)] {
            let line = #"{"predicate":"a !=[:minapp] '\#(spelling)'","record":{"a":"\u00e9"}}"#
            let answer = lines.answer(to: Array(line.utf8), now: nil)
            #expect(answer.json["result"] == .bool(holds), "\(answer.text)")
        }
    }

    private func check(
        _ task: PredicateLine.Task, _ dialect: PredicateDialect?, _ line: String, _ answer: String
    ) {
        let found = PredicateLine(dialect: dialect, task: task).answer(
            to: Array(line.utf8), now: nil)
        #expect(JSONValue.object(found.json).text == answer)
    }
}
