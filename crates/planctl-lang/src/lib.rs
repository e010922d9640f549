//! Turns plan text into a graph, and a graph into text.
