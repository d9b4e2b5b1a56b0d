"""What a process is: the graph, the Python DSL, BPMN in and out, expressions. No I/O."""
